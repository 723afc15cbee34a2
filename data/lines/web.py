"""requests, urllib and http.client: the server's port is the first argument."""

import http.client
import sys
import urllib.request

import requests

address = f"http://127.0.0.1:{sys.argv[1]}/"
requests.post(address, data=b"1", timeout=10)  # effect: send*
urllib.request.urlopen(address, b"2", timeout=10).close()  # effect: send*
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.request("POST", "/", b"3")  # effect: send*
connection.getresponse()
