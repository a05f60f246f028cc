"""The versions of prices as operators make them, through every door: published, scheduled, called off."""
