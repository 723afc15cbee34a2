"""Names the jars of the Kafka broker and of Spark's Kafka source, which labkit downloads."""

from labkit.host.jars import JarSet

VERSION = "4.3.0"
"""The version of the Kafka broker.

After changing a version here, renew the list of sums with `sha256sum *.jar` in the folder of the jars.
"""

BROKER = JarSet(
    what=f"Kafka {VERSION}",
    folder_name=f"kafka-{VERSION}",
    sums_file="kafka_broker.sha256",
    # The broker, and an implementation of its logging interface, because the broker contains only the interface.
    packages=(("org.apache.kafka", "kafka_2.13", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36")),
    transitive=True,
    megabytes=44,
    otherwise="set LABKIT_KAFKA=host:port to use your own broker",
)

CONNECTOR = JarSet(
    what="Spark's Kafka source",
    folder_name="kafka-connector-4.2.0",
    sums_file="kafka_connector.sha256",
    packages=(
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
        # For delegation tokens, which the lab does not use; 4.0.1 to 4.2.0 are missing in the repository.
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        ("org.apache.kafka", "kafka-clients", "3.9.1"),
        ("org.apache.commons", "commons-pool2", "2.12.1"),
    ),
    # Not with Maven's list of dependencies, which names a missing token provider; PySpark contains all others.
    transitive=False,
    megabytes=10,
    otherwise="use a job that reads a file",
)
