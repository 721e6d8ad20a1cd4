"""The program of a Spark cluster that is a job: ``lava run sparkapplication.yaml`` (docs/examples.md)."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Sum up squares on all executors, which are there when the session is."""
    spark = SparkSession.builder.getOrCreate()
    numbers = spark.sparkContext.parallelize(range(int(sys.argv[1])))
    cores = spark.sparkContext.defaultParallelism
    print(f"{cores} cores: {numbers.map(lambda number: number * number).sum()}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
