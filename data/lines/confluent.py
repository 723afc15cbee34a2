"""confluent-kafka: librdkafka's own threads send. The broker's address is the first argument."""

import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

admin = AdminClient({"bootstrap.servers": sys.argv[1]})
admin.create_topics([NewTopic("confluent", 1, 1)])["confluent"].result(30)  # effect: send*CreateTopics
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "confluent"})
producer.init_transactions(30)  # effect: send*InitProducerId
producer.begin_transaction()
producer.produce("confluent", b"1")
producer.commit_transaction(30)  # effect: send*AddPartitionsToTxn send*Produce send*EndTxn
