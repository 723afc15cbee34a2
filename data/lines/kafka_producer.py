"""kafka-python: sends with and without a flush, and a transaction. The broker's address is the first argument."""

import sys

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

admin = KafkaAdminClient(bootstrap_servers=sys.argv[1])  # effect: send*
admin.create_topics([NewTopic("lines", 1, 1)])  # effect: send*
admin.close()  # effect: send*
producer = KafkaProducer(bootstrap_servers=sys.argv[1], transactional_id="lines")  # effect: send*
producer.init_transactions()  # effect: send*
producer.begin_transaction()
producer.send("lines", b"1").get(30)  # effect: send*
producer.commit_transaction()  # effect: send*
producer.close()  # effect: send*
