package files

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"kaz/internal/arm"
	"kaz/internal/arm/cache"
	kazure "kaz/internal/azure"
	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/node"
	"kaz/internal/csi/mount"
	"kaz/internal/fileservice"
	planshare "kaz/internal/plan/share"
	"kaz/internal/testkit"
	"kaz/internal/testkit/guest"
	"kaz/test/csi/driver"
)

// toHost carries requests to all hosts to the host of the guest.
var toHost = &http.Client{Transport: &http.Transport{
	DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(guest.HostAddress, port))
	},
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
}}

// csi-sanity, with the driver in the guest, its volumes on real SMB mounts, and Azure on the host.
func TestSanity(t *testing.T) {
	guest.Facts[facts](t)
	client := openAzure(t)
	cluster := planshare.Cluster{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location, Suffix: "core.windows.net",
	}
	files := fileservice.Options{Transport: toHost}.Open
	controller := file.Config{
		Name: file.DefaultName, Version: "test", Cluster: cluster, Azure: client, Files: files, Log: slog.New(slog.DiscardHandler),
	}
	dir := t.TempDir()
	endpoint := "unix://" + filepath.Join(dir, "csi.sock")
	driver.Serve(t, endpoint, csi.Services{
		Identity: &file.Identity{Config: controller}, Controller: file.NewController(controller),
		Node: node.New(node.Config{
			Driver: file.DefaultName, Node: "guest", Cluster: cluster, Mounter: node.Kernel{}, Mounts: mount.New(1), Files: files,
			Key: file.NewKeys(client).Of, Defaults: planshare.Defaults{NoShareSocket: true}, MountGroup: true, Stats: true,
		}),
	}, driver.Log(t))
	config := sanity.NewTestConfig()
	config.Address = endpoint
	config.TargetPath, config.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
	config.TestVolumeSize = 32 << 30 // the least of StandardV2_LRS
	// Names of accounts are not known in the guest.
	config.TestVolumeParametersFile = driver.Write(t, dir, "parameters.yaml", "skuName: StandardV2_LRS\nserver: "+guest.HostAddress+"\n")
	config.TestVolumeMutableParametersFile = driver.Write(t, dir, "mutable.yaml", "provisionedIOPS: \"3000\"\nprovisionedBandwidth: \"125\"\n")
	sanity.Test(t, config)
}

// openAzure returns a client of the host's Azure with the resource group of a cluster.
func openAzure(t *testing.T) file.Azure {
	t.Helper()
	client, err := arm.New(arm.Config{Endpoint: "http://" + net.JoinHostPort(guest.HostAddress, managerPort), Transport: toHost})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := cache.Over(client, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	group := kazure.Write{ID: testkit.Group, Body: []byte(`{"location": "` + testkit.Location + `"}`)}
	if _, err := kept.Put(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	return struct {
		kazure.Reader
		kazure.Writer
	}{kept.Fresh(), kept}
}
