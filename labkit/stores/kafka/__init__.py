"""Kafka as a store: one topic holds all rows in order of visibility, and transactions outlive their process."""
