"""A network, a storage account with a blob, and a virtual machine, with the SDK for Python.

pip install azure-identity azure-mgmt-resource azure-mgmt-network azure-mgmt-compute azure-mgmt-storage azure-storage-blob
"""

import os
import pathlib

from azure.identity import DefaultAzureCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource import ResourceManagementClient
from azure.mgmt.storage import StorageManagementClient
from azure.storage.blob import BlobServiceClient

GROUP, PLACE = "first-python", {"location": "eastus"}
credential, subscription = DefaultAzureCredential(), os.environ["AZURE_SUBSCRIPTION_ID"]

ResourceManagementClient(credential, subscription).resource_groups.create_or_update(GROUP, PLACE)

network = NetworkManagementClient(credential, subscription)
net = network.virtual_networks.begin_create_or_update(GROUP, "net", PLACE | {
    "address_space": {"address_prefixes": ["10.0.0.0/16"]},
    "subnets": [{"name": "machines", "address_prefix": "10.0.0.0/24"}],
}).result()
nic = network.network_interfaces.begin_create_or_update(GROUP, "vm-nic", PLACE | {
    "ip_configurations": [{"name": "main", "subnet": {"id": net.subnets[0].id}}],
}).result()

account = StorageManagementClient(credential, subscription).storage_accounts.begin_create(GROUP, "kazfirstpython", PLACE | {
    "kind": "StorageV2", "sku": {"name": "Standard_LRS"},
}).result()
container = BlobServiceClient(account.primary_endpoints.blob, credential).create_container("docs")
text = pathlib.Path(__file__).with_name("hello.txt").read_bytes()
container.upload_blob("hello.txt", text)
print("blob:", container.download_blob("hello.txt").readall().decode().strip())

vm = ComputeManagementClient(credential, subscription).virtual_machines.begin_create_or_update(GROUP, "vm", PLACE | {
    "hardware_profile": {"vm_size": "Standard_D2s_v3"},
    "storage_profile": {"image_reference": {"publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy",
                                            "sku": "22_04-lts-gen2", "version": "latest"}},
    "os_profile": {"computer_name": "vm", "admin_username": "operator", "admin_password": "Correct-Horse-1"},
    "network_profile": {"network_interfaces": [{"id": nic.id}]},
}).result()
print("machine:", vm.id)
