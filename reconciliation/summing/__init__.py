"""The partial aggregates of one link by columns, on this machine: what `transforms.sums` has Spark make elsewhere."""
