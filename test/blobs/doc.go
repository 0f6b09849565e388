// Package blobs runs the tests of the official SDK azblob, which are meant for Azure, with the blobs of a local Azure.
package blobs

// What the tests of the SDK import.
import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage"
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	_ "github.com/stretchr/testify/suite"
)
