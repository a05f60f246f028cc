"""Overview: whether money and service are healthy, against last week."""

from gateway.admin.pages.overview.page import show_overview
from gateway.admin.pages.overview.start import show_start

PAGES = (show_overview, show_start)
