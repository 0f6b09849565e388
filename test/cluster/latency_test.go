package cluster_test

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/testkit"
)

// TestLatency creates a Service in an Azure with latency, a fiftieth of the real one's, and with
// throttling.
func TestLatency(t *testing.T) {
	c := startUp(t, newDir(t), "--nodes", "2", "--latency", "0.02", "--throttle", "azure")
	if _, err := c.apply(testkit.NewService("web", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})); err != nil {
		t.Fatal(err)
	}
	c.removeAll("web")
	c.stop(syscall.SIGTERM)
}
