"""The HTTP surface: thin translations between API families and the way of a request. No business rule lives here."""
