"""What the playground works with: forms made of models, calls made of forms, and the runs that are watched."""
