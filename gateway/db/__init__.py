"""The database: sessions, migrations, and the tables, one file per family."""
