package app

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	componentbaseconfig "k8s.io/component-base/config"

	"kaz/internal/component/access"
	"kaz/internal/component/event"
)

// The event reasons for the program as a whole.
const (
	reasonRights   = "MissingAzureRights"
	reasonRejected = "CloudConfigRejected"
	reasonApplied  = "CloudConfigApplied"
)

// notices reports problems of the whole program as events on its leader election lease.
type notices struct {
	recorder record.EventRecorder
	about    *corev1.ObjectReference
	stop     func()
}

func newNotices(ctx context.Context, client kubernetes.Interface, election componentbaseconfig.LeaderElectionConfiguration) *notices {
	recorder, stop := event.NewRecorder(ctx, client, component)
	return &notices{
		recorder: recorder, stop: stop,
		about: &corev1.ObjectReference{
			APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
			Namespace: or(election.ResourceNamespace, "kube-system"), Name: or(election.ResourceName, "cloud-controller-manager"),
		},
	}
}

// missing reports missing Azure rights. It does not report a right that only degrades a feature
// when it is absent.
func (n *notices) missing(lacks []access.Lack) {
	for _, l := range lacks {
		if !l.Degrades {
			n.recorder.Event(n.about, corev1.EventTypeWarning, reasonRights, l.String())
		}
	}
}

// rejected reports a cloud configuration that is not used.
func (n *notices) rejected(err error) {
	slog.Error("cloud configuration rejected; keeping the previous one", "error", err)
	n.recorder.Eventf(n.about, corev1.EventTypeWarning, reasonRejected, "keeping the previous configuration: %v", err)
}

// applied reports a cloud configuration that is now in use.
func (n *notices) applied(message string) {
	slog.Info("cloud configuration", "message", message)
	n.recorder.Event(n.about, corev1.EventTypeNormal, reasonApplied, message)
}
