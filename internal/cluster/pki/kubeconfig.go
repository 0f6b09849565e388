package pki

import (
	"encoding/json"
	"time"

	"sigs.k8s.io/yaml"
)

// AdminValidity is how long the certificate of the first administrator is valid.
const AdminValidity = 365 * 24 * time.Hour

type object = map[string]any

// Kubeconfig is a kubeconfig with a certificate of the group system:masters. It trusts all authorities of a rotation.
func (a Authority) Kubeconfig(cluster, server string, now time.Time) ([]byte, error) {
	certificate, key, err := a.Client("kubernetes-admin", "system:masters", now, now.Add(AdminValidity))
	if err != nil {
		return nil, err
	}
	user := cluster + "-admin"
	text, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": cluster,
		"clusters": []object{{"name": cluster, "cluster": object{"server": server, "certificate-authority-data": a.Trusted()}}},
		"users":    []object{{"name": user, "user": object{"client-certificate-data": certificate, "client-key-data": key}}},
		"contexts": []object{{"name": cluster, "context": object{"cluster": cluster, "user": user}}},
	})
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(text)
}
