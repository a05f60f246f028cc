"""Faregate's gateway side. Importing it loads nothing: workers import `gateway.contract` from here."""
