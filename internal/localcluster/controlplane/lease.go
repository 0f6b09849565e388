package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// leasesPath is the API path of node leases.
const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

// object has the fields that are read of leases, nodes and pods.
type object struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Holder string `json:"holderIdentity"` // of a lease
		Node   string `json:"nodeName"`       // of a pod
	} `json:"spec"`
	Status struct {
		Address string `json:"podIP"`
	} `json:"status"`
}

func (r *run) list(ctx context.Context, path string) ([]object, error) {
	var list struct {
		Items []object `json:"items"`
	}
	data, err := r.serverClient.do(ctx, http.MethodGet, r.server+path, "")
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return list.Items, nil
}

// releaseLeases deletes the leases of an earlier KWOK process, and returns the names of their nodes. KWOK has a new name at
// each start and would wait until they expire. A kubelet holds the lease under the name of its node, so its lease stays.
func (r *run) releaseLeases(ctx context.Context) (released map[string]bool, err error) {
	leases, err := r.list(ctx, leasesPath)
	if err != nil {
		return nil, err
	}
	released = map[string]bool{}
	for _, l := range leases {
		if l.Spec.Holder == l.Metadata.Name {
			continue
		}
		if _, err := r.serverClient.do(ctx, http.MethodDelete, r.server+leasesPath+"/"+l.Metadata.Name, ""); err != nil {
			return nil, fmt.Errorf("release the lease of node %s: %w", l.Metadata.Name, err)
		}
		released[l.Metadata.Name] = true
	}
	return released, nil
}

// showPods makes KWOK look at the running pods of nodes with released leases, so that it gives their addresses to no other
// pod. KWOK reads the pods of a node when it makes the node's lease. It skips them if its watch has not seen that lease
// yet. KWOK looks again when a pod changes. Here the change is in a field that a kubelet could change: the time of the last
// probe.
func (r *run) showPods(ctx context.Context, released map[string]bool) error {
	if len(released) == 0 {
		return nil
	}
	nodes, err := r.list(ctx, "/api/v1/nodes?labelSelector="+SimulatedLabel+"%3Dtrue")
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, n := range nodes {
		if name := n.Metadata.Name; released[name] {
			if shown[name], err = r.awaitLease(ctx, name); err != nil {
				return err
			}
		}
	}
	pods, err := r.list(ctx, "/api/v1/pods?fieldSelector=status.phase%3DRunning")
	if err != nil {
		return err
	}
	const atOnce = 8
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastProbeTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	for _, p := range pods {
		if shown[p.Spec.Node] && p.Status.Address != "" {
			path := "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
			g.Go(func() error {
				_, err := r.serverClient.do(ctx, http.MethodPatch, r.server+path+"/status", body)
				if err != nil && !isNotFound(err) { // a pod can be deleted meanwhile
					return fmt.Errorf("show the pod %s/%s to KWOK: %w", p.Metadata.Namespace, p.Metadata.Name, err)
				}
				return nil
			})
		}
	}
	return g.Wait()
}

// awaitLease waits until KWOK has the lease of a node. It reports false if the node was deleted meanwhile.
func (r *run) awaitLease(ctx context.Context, node string) (held bool, err error) {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		_, err := r.serverClient.do(ctx, http.MethodGet, r.server+leasesPath+"/"+node, "")
		if err == nil {
			return true, nil
		}
		if _, err := r.serverClient.do(ctx, http.MethodGet, r.server+"/api/v1/nodes/"+node, ""); isNotFound(err) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("the simulated node %s has no lease: %w; last response: %w", node, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func isNotFound(err error) bool {
	refusal, ok := errors.AsType[*statusError](err)
	return ok && refusal.code == http.StatusNotFound
}
