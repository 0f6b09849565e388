# A network, a storage account with a blob, and a virtual machine, with az.
set -eu
here=$(dirname "$0")

az group create --name first-az --location eastus --output none
az network vnet create --resource-group first-az --name net --address-prefixes 10.0.0.0/16 \
  --subnet-name machines --subnet-prefixes 10.0.0.0/24 --output none
az storage account create --resource-group first-az --name kazfirstaz --sku Standard_LRS --output none
az storage container create --account-name kazfirstaz --name docs --auth-mode login --output none
az storage blob upload --account-name kazfirstaz --container-name docs --name hello.txt --file "$here/hello.txt" --auth-mode login --output none
az vm create --resource-group first-az --name vm --image Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest \
  --size Standard_D2s_v3 --vnet-name net --subnet machines \
  --authentication-type password --admin-username operator --admin-password Correct-Horse-1 --output none
az resource list --resource-group first-az --output table
