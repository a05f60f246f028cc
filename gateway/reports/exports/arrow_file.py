"""Rows of Postgres as Arrow's arrays, and those as a Parquet file. Needs the extra `reports`."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Any

import arro3.core as arrow
import arro3.io as arrow_io

from gateway.reports.exports.columns import Column

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def write_groups(
    columns: tuple[Column, ...], groups: Iterator[Sequence[Sequence[Any]]], file: IO[bytes], group_rows: int
) -> None:
    """Write groups of at most `group_rows` rows as they come, each as a row group of the file."""
    kinds = [_kind(column) for column in columns]
    schema = arrow.Schema(
        [arrow.Field(each.name, kind, nullable=True) for each, kind in zip(columns, kinds, strict=True)]
    )

    def batches() -> Iterator[Any]:
        for group in groups:
            lists = zip(*group, strict=True)
            arrays = [_array(column, kind, values) for column, kind, values in zip(columns, kinds, lists, strict=True)]
            yield arrow.RecordBatch.from_arrays(arrays, schema=schema)

    reader = arrow.RecordBatchReader.from_batches(schema, batches())
    arrow_io.write_parquet(reader, file, compression="zstd(1)", max_row_group_size=group_rows)


def _kind(column: Column) -> Any:
    if column.kind == "instant":
        return arrow.DataType.timestamp("us", tz="UTC")
    return arrow.DataType.int64() if column.kind == "whole" else arrow.DataType.utf8()


def _array(column: Column, kind: Any, values: tuple[Any, ...]) -> Any:
    if column.kind != "instant":
        return arrow.Array(list(values), kind)
    return arrow.Array([(value - _EPOCH) // _MICROSECOND for value in values], arrow.DataType.int64()).cast(kind)
