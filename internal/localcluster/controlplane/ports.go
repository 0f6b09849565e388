package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"

	"kaz/internal/host/atomicfile"
	"kaz/internal/host/freeport"
)

// ports are the loopback ports of a cluster's servers. They are stored, so that a restarted cluster has the same address.
type ports struct {
	APIServer         int `json:"kube-apiserver"`
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcd-peer"`
	ControllerManager int `json:"kube-controller-manager"`
	Scheduler         int `json:"kube-scheduler"`
	KWOK              int `json:"kwok"`
}

func (p *ports) each() []*int {
	return []*int{&p.APIServer, &p.Etcd, &p.EtcdPeer, &p.ControllerManager, &p.Scheduler, &p.KWOK}
}

// openPorts reads the stored ports and replaces each one that is missing or taken by a free port.
func openPorts(file string) (ports, error) {
	var p ports
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("choose ports: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(data, &p); err != nil {
			return p, fmt.Errorf("choose ports: %s: %w", file, err)
		}
	}
	if err := p.choose(); err != nil {
		return p, fmt.Errorf("choose ports: %w", err)
	}
	if data, err = json.Marshal(p); err != nil {
		return p, fmt.Errorf("choose ports: %w", err)
	}
	if err := atomicfile.Write(file, append(data, '\n'), 0o600); err != nil {
		return p, fmt.Errorf("choose ports: %w", err)
	}
	return p, nil
}

// choose gives each server without a free port another one.
func (p *ports) choose() error {
	all := p.each()
	wanted := make([]string, len(all))
	for i, port := range all {
		wanted[i] = loopbackAddress(*port)
	}
	chosen, err := freeport.Choose(wanted...)
	if err != nil {
		return err
	}
	for i, address := range chosen {
		*all[i] = int(netip.MustParseAddrPort(address).Port())
	}
	return nil
}

func loopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func secureURL(port int) string { return "https://" + loopbackAddress(port) }
