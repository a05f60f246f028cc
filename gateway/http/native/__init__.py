"""The native family: any task, any model, waiting for it or not."""
