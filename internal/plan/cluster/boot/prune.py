"""Deletes backups of etcd from the cluster's container, but the newest ones. Usage: prune.py NUMBER"""
import os
import re
import shlex
import sys
import urllib.error
import urllib.parse
import urllib.request
import json
import xml.etree.ElementTree as tree

keep = int(sys.argv[1])
with open(os.environ.get("KAZ_ROOT", "") + "/etc/kaz/node.env") as f:
    settings = dict(word.split("=", 1) for word in shlex.split(f.read()))
container = settings["KAZ_ELECTION_URL"]


def ask(url, headers, method="GET", opener=urllib.request.build_opener()):
    with opener.open(urllib.request.Request(url, headers=headers, method=method), timeout=60) as answer:
        return answer.read()


query = {"api-version": "2018-02-01", "resource": "https://storage.azure.com/", "msi_res_id": settings["KAZ_IDENTITY"]}
metadata = os.environ.get("KAZ_IMDS", "http://169.254.169.254") + "/metadata/identity/oauth2/token?" + urllib.parse.urlencode(query)
token = json.loads(ask(metadata, {"Metadata": "true"}, opener=urllib.request.build_opener(urllib.request.ProxyHandler({}))))
headers = {"Authorization": "Bearer " + token["access_token"], "x-ms-version": "2021-08-06"}
try:
    ask(container + "/restore", headers)
    sys.exit("a restore has begun: no backup is deleted")
except urllib.error.HTTPError as e:
    if e.code != 404:
        raise

names, marker = [], ""
while True:
    query = {"restype": "container", "comp": "list", "prefix": "etcd/", "marker": marker}
    page = tree.fromstring(ask(container + "?" + urllib.parse.urlencode(query), headers))
    names += [name.text for name in page.iterfind("Blobs/Blob/Name")]
    marker = page.findtext("NextMarker") or ""
    if not marker:
        break

# Their names begin with their time, so their order is that of their age.
backups = sorted(name for name in names if re.fullmatch(r"etcd/\d{8}T\d{6}Z-\d+\.db", name))
for name in backups[:-keep] if keep > 0 else []:
    ask(container + "/" + name, headers, method="DELETE")
    print("deleted", name)
