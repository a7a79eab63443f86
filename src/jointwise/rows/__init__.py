"""Rows as codes, wherever they are kept.

`base.Rows` is what a fit needs of them. `coded.CodedRows` keeps the codes on this machine, in memory or in a mapped
file; `parted.PartedRows` leaves them with the workers of a cluster. `sources` has one module for each place that a
table can come from.
"""
