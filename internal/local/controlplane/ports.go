package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	"kaz/internal/local/atomicfile"
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

// choose opens a port for each server. All stay open until the last one is chosen, so that no port is chosen twice.
func (p *ports) choose() error {
	for _, port := range p.each() {
		l, err := listen(*port)
		if err != nil {
			return err
		}
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// listen opens the wanted port if it is free, else any free port.
func listen(wanted int) (net.Listener, error) {
	if wanted > 0 && wanted < 1<<16 {
		if l, err := net.Listen("tcp", loopbackAddress(wanted)); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

func loopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func secureURL(port int) string { return "https://" + loopbackAddress(port) }
