//go:build ignore

// A network, a storage account with a blob, and a virtual machine, with the SDK for Go.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
)

const group = "first-go"

var (
	subscription = os.Getenv("AZURE_SUBSCRIPTION_ID")
	place        = to.Ptr("eastus")
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	credential := try(azidentity.NewDefaultAzureCredential(nil))
	groups := try(armresources.NewResourceGroupsClient(subscription, credential, nil))
	try(groups.CreateOrUpdate(ctx, group, armresources.ResourceGroup{Location: place}, nil))

	fmt.Println("machine:", machine(ctx, credential, network(ctx, credential)))
	fmt.Print("blob: ", blob(ctx, credential))
}

// network makes a network with a subnet, and an interface in it, and returns the interface's ID.
func network(ctx context.Context, credential azcore.TokenCredential) *string {
	clients := try(armnetwork.NewClientFactory(subscription, credential, nil))
	net := done(clients.NewVirtualNetworksClient().BeginCreateOrUpdate(ctx, group, "net", armnetwork.VirtualNetwork{
		Location: place,
		Properties: &armnetwork.VirtualNetworkPropertiesFormat{
			AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{to.Ptr("10.0.0.0/16")}},
			Subnets: []*armnetwork.Subnet{{
				Name:       to.Ptr("machines"),
				Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to.Ptr("10.0.0.0/24")},
			}},
		},
	}, nil))
	nic := done(clients.NewInterfacesClient().BeginCreateOrUpdate(ctx, group, "vm-nic", armnetwork.Interface{
		Location: place,
		Properties: &armnetwork.InterfacePropertiesFormat{IPConfigurations: []*armnetwork.InterfaceIPConfiguration{{
			Name:       to.Ptr("main"),
			Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{Subnet: &armnetwork.Subnet{ID: net.Properties.Subnets[0].ID}},
		}}},
	}, nil))
	return nic.ID
}

// machine makes a virtual machine with the interface and returns its ID.
func machine(ctx context.Context, credential azcore.TokenCredential, nic *string) string {
	client := try(armcompute.NewVirtualMachinesClient(subscription, credential, nil))
	vm := done(client.BeginCreateOrUpdate(ctx, group, "vm", armcompute.VirtualMachine{
		Location: place,
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypesStandardD2SV3)},
			StorageProfile: &armcompute.StorageProfile{ImageReference: &armcompute.ImageReference{
				Publisher: to.Ptr("Canonical"), Offer: to.Ptr("0001-com-ubuntu-server-jammy"), SKU: to.Ptr("22_04-lts-gen2"),
				Version: to.Ptr("latest"),
			}},
			OSProfile: &armcompute.OSProfile{
				ComputerName: to.Ptr("vm"), AdminUsername: to.Ptr("operator"), AdminPassword: to.Ptr("Correct-Horse-1"),
			},
			NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{{ID: nic}}},
		},
	}, nil))
	return *vm.ID
}

// blob makes a storage account, writes a blob and returns what is read from it.
func blob(ctx context.Context, credential azcore.TokenCredential) string {
	accounts := try(armstorage.NewAccountsClient(subscription, credential, nil))
	account := done(accounts.BeginCreate(ctx, group, "kazfirstgo", armstorage.AccountCreateParameters{
		Location: place, Kind: to.Ptr(armstorage.KindStorageV2), SKU: &armstorage.SKU{Name: to.Ptr(armstorage.SKUNameStandardLRS)},
	}, nil))
	blobs := try(azblob.NewClient(*account.Properties.PrimaryEndpoints.Blob, credential, nil))
	try(blobs.CreateContainer(ctx, "docs", nil))
	try(blobs.UploadBuffer(ctx, "docs", "hello.txt", []byte("Hello from the local Azure.\n"), nil))
	content := try(blobs.DownloadStream(ctx, "docs", "hello.txt", nil)).Body
	defer content.Close()
	return string(try(io.ReadAll(content)))
}

// done waits for an operation and returns its result.
func done[T any](poller *runtime.Poller[T], err error) T {
	return try(try(poller, err).PollUntilDone(context.Background(), nil))
}

// try returns a value, or ends the program with the error.
func try[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
