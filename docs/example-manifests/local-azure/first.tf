# A network, a storage account with a blob, and a virtual machine, with the provider azurerm.
terraform {
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.9"
    }
  }
}

provider "azurerm" {
  features {}
}

resource "azurerm_resource_group" "first" {
  name     = "first-terraform"
  location = "eastus"
}

resource "azurerm_virtual_network" "net" {
  name                = "net"
  resource_group_name = azurerm_resource_group.first.name
  location            = azurerm_resource_group.first.location
  address_space       = ["10.0.0.0/16"]
}

resource "azurerm_subnet" "machines" {
  name                 = "machines"
  resource_group_name  = azurerm_resource_group.first.name
  virtual_network_name = azurerm_virtual_network.net.name
  address_prefixes     = ["10.0.0.0/24"]
}

resource "azurerm_network_interface" "nic" {
  name                = "vm-nic"
  resource_group_name = azurerm_resource_group.first.name
  location            = azurerm_resource_group.first.location

  ip_configuration {
    name                          = "main"
    subnet_id                     = azurerm_subnet.machines.id
    private_ip_address_allocation = "Dynamic"
  }
}

resource "azurerm_storage_account" "account" {
  name                     = "kazfirstterraform"
  resource_group_name      = azurerm_resource_group.first.name
  location                 = azurerm_resource_group.first.location
  account_tier             = "Standard"
  account_replication_type = "LRS"
}

resource "azurerm_storage_container" "docs" {
  name               = "docs"
  storage_account_id = azurerm_storage_account.account.id
}

resource "azurerm_storage_blob" "hello" {
  name                   = "hello.txt"
  storage_account_name   = azurerm_storage_account.account.name
  storage_container_name = azurerm_storage_container.docs.name
  type                   = "Block"
  source                 = "${path.module}/hello.txt"
}

resource "azurerm_linux_virtual_machine" "vm" {
  name                            = "vm"
  resource_group_name             = azurerm_resource_group.first.name
  location                        = azurerm_resource_group.first.location
  size                            = "Standard_D2s_v3"
  admin_username                  = "operator"
  admin_password                  = "Correct-Horse-1"
  disable_password_authentication = false
  network_interface_ids           = [azurerm_network_interface.nic.id]

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Standard_LRS"
  }

  source_image_reference {
    publisher = "Canonical"
    offer     = "0001-com-ubuntu-server-jammy"
    sku       = "22_04-lts-gen2"
    version   = "latest"
  }
}
