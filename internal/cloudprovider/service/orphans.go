package service

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
)

// orphansItem is the item that stands for what deleted Services have left in Azure: a user has
// taken the finalizer off, Azure has said that something is done which is not, or a leader that
// did not know yet that it was none has served a Service that the next one had removed.
var orphansItem = item{Name: "leftovers"}

// orphanRequest is the request to remove that. It stands for no Service.
func orphanRequest(r reasons) request {
	return request{reasons: r, orphans: true,
		service: loadbalancer.Service{Gone: true, Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: orphansItem.Name}}}}
}

// mayBeOrphaned reports whether something in Azure may be left of deleted Services, as far as
// informers tell. It looks only where a Service is refused for what Azure has.
func (c commit) mayBeOrphaned() (bool, error) {
	if !slices.ContainsFunc(c.out.Decision.Problems, isOfAzure) {
		return false, nil
	}
	left, err := leftover.Find(c.target.Config, c.target.Have, c.target.All())
	return slices.ContainsFunc(left, func(s loadbalancer.Service) bool { return !decision.IsRulesAlone(s) }), err
}

// addOrphans has a commit remove what deleted Services have left, if one of its requests asks for
// that.
func (b *committer) addOrphans(ctx context.Context, c commit) (commit, error) {
	if !slices.ContainsFunc(c.batch, func(r request) bool { return r.orphans }) {
		return c, nil
	}
	services := len(c.target.Services)
	var err error
	c.target.Target, err = c.target.WithOrphans(ctx, b.azure, b.kube.All)
	if err != nil {
		return c, err
	}
	for _, s := range c.target.Services[services:] {
		slog.InfoContext(ctx, "left in azure without a service", "service", s.Key(), "uid", s.UID)
	}
	return c, nil
}
