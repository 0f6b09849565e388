"""Uses the SDK for Python that az brings along against a local Azure.

Usage: sdk.py ENDPOINTS, the file with the line that "kaz local azure --proxy-address" prints.
"""

import json
import os
import pathlib
import sys
import time

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.dns import DnsManagementClient
from azure.mgmt.msi import ManagedServiceIdentityClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource import ResourceManagementClient, SubscriptionClient
from azure.mgmt.storage import StorageManagementClient


class Token:
    """The token that the local Azure printed."""

    def __init__(self, text):
        self.text = text

    def get_token(self, *scopes, **options):
        return AccessToken(self.text, int(time.time()) + 3600)


def check(what, held):
    if not held:
        sys.exit(f"{sys.argv[0]}: {what}")


def main():
    endpoints = json.loads(pathlib.Path(sys.argv[1]).read_text())
    os.environ["REQUESTS_CA_BUNDLE"] = endpoints["caFile"]
    credential, subscription = Token(endpoints["token"]), endpoints["subscription"]
    options = {"base_url": endpoints["arm"], "credential_scopes": [endpoints["arm"] + "/.default"]}
    began = time.monotonic()

    check("the subscription is not listed", [s.subscription_id for s in SubscriptionClient(credential, **options).subscriptions.list()]
          == [subscription])
    resources = ResourceManagementClient(credential, subscription, **options)
    group = resources.resource_groups.create_or_update("sdk", {"location": "eastus", "tags": {"a": "b"}})
    check("the group has no tags", group.tags == {"a": "b"})

    network = NetworkManagementClient(credential, subscription, **options)
    made = network.virtual_networks.begin_create_or_update("sdk", "v", {
        "location": "eastus", "address_space": {"address_prefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "s", "address_prefix": "10.0.0.0/24"}]}).result()
    check("the network has no subnet", made.subnets[0].provisioning_state == "Succeeded")
    nic = network.network_interfaces.begin_create_or_update("sdk", "n", {
        "location": "eastus", "ip_configurations": [{"name": "c", "subnet": {"id": made.subnets[0].id}}]}).result()
    check("the interface has no address", nic.ip_configurations[0].private_ip_address == "10.0.0.4")
    address = network.public_ip_addresses.begin_create_or_update("sdk", "ip", {
        "location": "eastus", "sku": {"name": "Standard"}, "public_ip_allocation_method": "Static"}).result()
    balancer = network.load_balancers.begin_create_or_update("sdk", "lb", {
        "location": "eastus", "sku": {"name": "Standard"},
        "frontend_ip_configurations": [{"name": "f", "public_ip_address": {"id": address.id}}],
        "backend_address_pools": [{"name": "p"}]}).result()
    check("the load balancer has no pool", balancer.backend_address_pools[0].name == "p")
    try:
        network.subnets.begin_delete("sdk", "v", "s").result()
        check("a subnet in use was deleted", False)
    except HttpResponseError as refusal:
        check("the refusal has another code", refusal.error.code == "InUseSubnetCannotBeDeleted")

    zones = DnsManagementClient(credential, subscription, **options)
    zones.zones.create_or_update("sdk", "example.org", {"location": "global"})
    zones.record_sets.create_or_update("sdk", "example.org", "www", "A", {"ttl": 60, "arecords": [{"ipv4_address": "1.2.3.4"}]})
    check("a record is missing", len(list(zones.record_sets.list_by_type("sdk", "example.org", "A"))) == 1)

    accounts = StorageManagementClient(credential, subscription, **options)
    account = accounts.storage_accounts.begin_create("sdk", "kazsdkaccount", {
        "location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}).result()
    check("the account is not ready", account.provisioning_state == "Succeeded")
    check("the account has no keys", len(accounts.storage_accounts.list_keys("sdk", "kazsdkaccount").keys) == 2)

    identities = ManagedServiceIdentityClient(credential, subscription, **options)
    identity = identities.user_assigned_identities.create_or_update("sdk", "i", {"location": "eastus"})
    check("the identity has no principal", identity.principal_id)

    template = {"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "contentVersion": "1.0.0.0",
                "resources": [{"type": "Microsoft.ManagedIdentity/userAssignedIdentities", "apiVersion": "2018-11-30",
                               "name": "[concat('copy', copyIndex())]", "location": "eastus", "copy": {"name": "l", "count": 3}}]}
    deployment = {"properties": {"mode": "Incremental", "template": template}}
    changes = resources.deployments.begin_what_if("sdk", "d", deployment).result()
    check("the what-if has other changes", sum(c.change_type == "Create" for c in changes.changes) == 3)
    done = resources.deployments.begin_create_or_update("sdk", "d", deployment).result()
    check("the deployment failed", done.properties.provisioning_state == "Succeeded" and len(done.properties.output_resources) == 3)
    check("resources are missing", len(list(resources.resources.list_by_resource_group("sdk"))) == 10)

    resources.resource_groups.begin_delete("sdk").result()
    try:
        resources.resource_groups.get("sdk")
        check("the group is still there", False)
    except ResourceNotFoundError:
        pass
    print(f"The SDK for Python: all calls succeeded in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
