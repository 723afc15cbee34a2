"""Work on real servers by hand and step by step: SQL on PostgreSQL, and transactions of Kafka.

    lab.postgres()    sessions that run SQL and show the result
    lab.kafka()       topics, and the records that a reader at each isolation level gets
    lab.rebalance()   consumers of one group that are stopped, slow, or killed
    lab.shop()        programs that write to PostgreSQL and Kafka, and are killed between the two writes
    lab.said(...)     several answers of servers on one card

Either server is the user's own (`LABKIT_POSTGRES`, `LABKIT_KAFKA`), or a private one that ends with this
process and removes its data. Runs that this process starts use the same server. The methods call the stores directly,
without a sink.
"""
