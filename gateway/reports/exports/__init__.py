"""Requests as files, however many: CSV, JSON, JSON lines and Parquet, streamed from one snapshot of Postgres.

columns.py   what a row of an export has, for operators and for an API key's owner
copying.py   CSV and JSON: written by Postgres (COPY), handed on as they come
parquet.py   Parquet: read by a cursor, written by arro3 (extra `reports`) in a thread
exports.py   Exports(database_url): at most two at once; a caller who leaves stops the statement
"""
