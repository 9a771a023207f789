"""The faults, a file for each thing that can break."""

from chaos.faults import brokers, clock, database, failover, measurements, network, nodes, pooler, releases

FAULTS = [
    *nodes.FAULTS,
    *database.FAULTS,
    *network.FAULTS,
    *failover.FAULTS,
    *clock.FAULTS,
    *pooler.FAULTS,
    *releases.FAULTS,
    *brokers.FAULTS,
    *measurements.FAULTS,
]
