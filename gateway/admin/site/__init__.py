"""What every page stands on: who asks, what they may, how a page is written, and what guards it. See README.md."""
