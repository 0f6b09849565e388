// Package event writes the Events of a program. Layer L4.
package event

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// NewRecorder returns a recorder of Events with a component as their source. The caller calls stop.
func NewRecorder(ctx context.Context, client kubernetes.Interface, component string) (recorder record.EventRecorder, stop func()) {
	events := record.NewBroadcaster(record.WithContext(ctx))
	events.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}), events.Shutdown
}
