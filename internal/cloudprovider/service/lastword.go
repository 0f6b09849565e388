package service

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
)

// outcomes are the reasons of the events that say how it went, and whether that was well.
var outcomes = map[string]bool{reasonEnsured: true, reasonUpdated: true, reasonSyncFailed: false, reasonUpdateFailed: false}

// lastWordsWithin is how long a start waits for the events that there are. A cluster can
// have very many.
const lastWordsWithin = 5 * time.Second

// leftFailed are the Services of which an earlier process has said last that they are not brought
// about. What a start finds in place is not news, but to them. Where events may not be listed,
// as the roles of running clusters do not allow that, or not in time, they are not told.
func (k kube) leftFailed(ctx context.Context) map[types.UID]bool {
	ctx, cancel := context.WithTimeout(ctx, lastWordsWithin)
	defer cancel()
	last, failed := map[types.UID]time.Time{}, map[types.UID]bool{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return k.client.CoreV1().Events(metav1.NamespaceAll).List(ctx, o)
	}
	services := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.kind", "Service").String()}
	err := pager.New(list).EachListItem(ctx, services, func(o runtime.Object) error {
		e, ok := o.(*corev1.Event)
		if !ok {
			return nil
		}
		uid, at := e.InvolvedObject.UID, e.LastTimestamp.Time
		if well, is := outcomes[e.Reason]; is && (at.After(last[uid]) || well && at.Equal(last[uid])) {
			last[uid], failed[uid] = at, !well
		}
		return nil
	})
	if err != nil {
		slog.DebugContext(ctx, "what services were told last is not known", "error", err)
	}
	return failed
}
