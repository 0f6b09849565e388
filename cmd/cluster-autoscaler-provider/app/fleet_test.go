package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

var (
	fleetNodes   = flag.Int("fleet", 200, "number of nodes of TestFleet, 100 in each scale set")
	fleetProgram = flag.String("program", "", "program of TestFleet, in place of the test binary: its memory is measured")
)

// TestFleet starts the program in a cluster with many groups and nodes, and counts its requests and its memory.
func TestFleet(t *testing.T) {
	const each = 100
	groups := max(*fleetNodes/each, 1)
	requests := filepath.Join(t.TempDir(), "requests")
	local, config := startAzureWith(t, groups, groups*each, requests)
	kubeconfig := serveNodes(t, local.Info().Subscription, groups, each)
	address := freeAddress(t)
	args := []string{"--cloud-config=" + config, "--kubeconfig=" + kubeconfig, "--address=" + address,
		"--metrics-address=" + freeAddress(t)}
	for n := range groups {
		args = append(args, fmt.Sprintf("--nodes=0:200:nodes%d", n))
	}
	before := len(requestLines(t, requests))
	command := program(context.WithoutCancel(t.Context()), local, args...)
	if *fleetProgram != "" {
		command.Path = *fleetProgram
	}
	began := time.Now()
	client := startProgram(t, command, address)
	eventually(t, func() error { return served(t, client, groups, each) })
	took := time.Since(began)
	memory := peakMemory(t, command)
	kinds := countRequests(t, requestLines(t, requests)[before:])
	t.Logf("%d groups, %d nodes: in service after %v; requests %v; at most %d MB resident", groups, groups*each,
		took.Round(time.Second/10), kinds, memory>>20)
	const mostMemory = 80 << 20
	if *fleetProgram != "" && memory > mostMemory {
		t.Errorf("%d MB resident, want at most %d MB", memory>>20, mostMemory>>20)
	}
	if kinds["sets"] != 1 || kinds["instances"] != groups || kinds["sizes"] != 1 || kinds["others"] > 0 {
		t.Errorf("requests %v: want one list of sets, one of sizes, and one of instances for each of %d groups", kinds, groups)
	}
}

// startProgram starts the program, and returns a client of it.
func startProgram(t *testing.T, command *exec.Cmd, address string) externalgrpc.CloudProviderClient {
	t.Helper()
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(command.Process.Signal(syscall.SIGTERM), command.Wait()); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	})
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return externalgrpc.NewCloudProviderClient(connection)
}

// served returns an error until all groups have all instances, and the nodes that a watch showed.
func served(t *testing.T, client externalgrpc.CloudProviderClient, groups, each int) error {
	r, err := client.NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
	if err != nil || len(r.NodeGroups) != groups {
		return fmt.Errorf("%d groups, %w", len(r.GetNodeGroups()), err)
	}
	for _, g := range r.NodeGroups {
		nodes, err := client.NodeGroupNodes(t.Context(), &externalgrpc.NodeGroupNodesRequest{Id: g.Id})
		if err != nil || len(nodes.Instances) != each {
			return fmt.Errorf("%s: %d instances, %w", g.Id, len(nodes.GetInstances()), err)
		}
		if !slices.ContainsFunc(nodes.Instances, func(i *externalgrpc.Instance) bool { return strings.Contains(i.Id, "/resourceGroups/KAZ/") }) {
			return fmt.Errorf("%s: no node is known", g.Id)
		}
	}
	return nil
}

// peakMemory returns the greatest resident memory of a program in bytes.
func peakMemory(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// requestLines returns the complete lines of a log of requests.
func requestLines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text[:bytes.LastIndexByte(text, '\n')+1]), "\n"), "\n")
}

// countRequests counts the requests to Azure by what they read, without tokens and the description of the cloud.
func countRequests(t *testing.T, lines []string) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	for _, line := range lines {
		var r struct{ Method, Path string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch path := strings.ToLower(r.Path); {
		case !strings.HasPrefix(path, "/subscriptions/"):
		case strings.HasSuffix(path, "/virtualmachinescalesets"):
			kinds["sets"]++
		case strings.HasSuffix(path, "/virtualmachines"):
			kinds["instances"]++
		case strings.HasSuffix(path, "/skus"):
			kinds["sizes"]++
		default:
			kinds["others"]++
			t.Log("another request:", r.Method, r.Path)
		}
	}
	return kinds
}

// serveNodes serves a Kubernetes API with a ready node for each machine, and returns a kubeconfig.
func serveNodes(t *testing.T, subscription string, groups, each int) string {
	t.Helper()
	ctx := t.Context()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		if query.Get("watch") != "" {
			w.(http.Flusher).Flush()
			select { // nothing changes
			case <-r.Context().Done():
			case <-ctx.Done():
			}
			return
		}
		first, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
		list.ResourceVersion = "1"
		last := min(first+limit, groups*each)
		for n := first; n < last; n++ {
			list.Items = append(list.Items, fleetNode(subscription, n/each, n%each))
		}
		if last < groups*each {
			list.Continue = strconv.Itoa(last)
		}
		_ = json.NewEncoder(w).Encode(list) // a program that stops no longer reads the answer
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fleetNode returns a node as a kubelet would write it. It spells the resource group of its machine in upper case.
func fleetNode(subscription string, group, n int) corev1.Node {
	name := fmt.Sprintf("nodes%d-%06d", group, n)
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), ResourceVersion: "1",
		Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			corev1.LabelInstanceTypeStable: "Standard_D2s_v5", corev1.LabelTopologyRegion: "westeurope",
			corev1.LabelTopologyZone: "westeurope-1",
		},
	}}
	node.Spec.ProviderID = fmt.Sprintf("azure://%s/virtualMachines/%d",
		azure.GroupID(subscription, "KAZ").Resource(compute.ScaleSets, fmt.Sprintf("nodes%d", group)), n)
	quantities := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Capacity, node.Status.Allocatable = quantities, quantities
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return node
}
