"""Looking at files of strangers, in processes of their own that may do nothing else: see docs/decisions/."""
