package autoscale

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/nodes"
)

// PriceSource reads what machines of a size cost in a region.
type PriceSource interface {
	Prices(ctx context.Context, region, size string) ([]nodegroup.PriceItem, error)
}

// How long prices are good, and how long after a failure they are read again. Azure changes Spot prices at most a few times a day.
const (
	pricesTTL   = 12 * time.Hour
	pricesAgain = 5 * time.Minute
)

// prices has the prices of sizes that calls asked for. It reads them in the background: only the expander "price" needs them.
type prices struct {
	source PriceSource // nil: there are no prices
	region string
	log    *slog.Logger

	known guarded[priceList]
	tasks sync.WaitGroup
}

// priceList has the rates of sizes, by their names in lower case.
type priceList struct {
	rates map[string]nodegroup.Rates
	next  map[string]time.Time // when a size is read again
}

// due reports whether a size is to be read, and if so has the next question wait for a while.
func (l *priceList) due(size string, now time.Time) bool {
	if now.Before(l.next[size]) {
		return false
	}
	l.next[size] = now.Add(pricesAgain)
	return true
}

// take takes the rates of a size. If there are none, those that were read before stay.
func (l *priceList) take(size string, rates nodegroup.Rates, now time.Time) {
	if len(rates) > 0 {
		l.rates[size] = rates
	}
	l.next[size] = now.Add(pricesTTL)
}

func newPrices(source PriceSource, region string, log *slog.Logger) *prices {
	return &prices{source: source, region: region, log: log, known: guarded[priceList]{
		state: priceList{rates: map[string]nodegroup.Rates{}, next: map[string]time.Time{}},
	}}
}

// rates returns the rates of a size as they were last read, nil if they never were. If they are missing or old, it begins a
// read in the background, unless ctx has ended; the next question gets its answer.
func (p *prices) rates(ctx context.Context, size string) nodegroup.Rates {
	if p.source == nil || size == "" {
		return nil
	}
	key, due := strings.ToLower(size), false
	rates := ask(&p.known, func(l *priceList) nodegroup.Rates {
		due = ctx.Err() == nil && l.due(key, time.Now())
		return l.rates[key]
	})
	if due {
		p.tasks.Go(func() { p.read(ctx, size) })
	}
	return rates
}

// read reads the rates of a size. If that fails, the rates that were read before stay.
func (p *prices) read(ctx context.Context, size string) {
	items, err := p.source.Prices(ctx, p.region, size)
	if err != nil {
		if ctx.Err() == nil {
			p.log.Warn("prices cannot be read; what was read before is used", "size", size, "region", p.region, "error", err)
		}
		return
	}
	rates := nodegroup.ReadRates(items, p.region, size)
	if len(rates) == 0 {
		p.log.Warn("there are no prices of a size", "size", size, "region", p.region)
	}
	p.known.change(func(l *priceList) { l.take(strings.ToLower(size), rates, time.Now()) })
}

// PricingNodePrice returns what a machine like that of a node costs in a time.
func (s *Server) PricingNodePrice(_ context.Context, r *externalgrpc.PricingNodePriceRequest) (
	*externalgrpc.PricingNodePriceResponse, error,
) {
	during, err := duration(r.GetStartTimestamp(), r.GetEndTimestamp(), r.GetStartTime(), r.GetEndTime())
	if err != nil {
		return nil, err
	}
	size, offer := s.Provider.machine(r.GetNode())
	if size == "" {
		return nil, status.Errorf(codes.InvalidArgument,
			"node %s: it is in no node group, and its label %s is empty, so its size is not known",
			r.GetNode().GetName(), corev1.LabelInstanceTypeStable)
	}
	price, known := s.Provider.prices.rates(s.Provider.writes.ctx(), size).Price(offer, during)
	if !known {
		return nil, s.Provider.noPrice("a machine of the size " + size)
	}
	return &externalgrpc.PricingNodePriceResponse{Price: price}, nil
}

// machine returns the size of a node's machine, and how the machine is had. The node is one of a group, or a template.
func (p *Provider) machine(node *externalgrpc.ExternalGrpcNode) (size string, offer nodegroup.Offer) {
	size, offer = nodegroup.Machine(node.GetLabels())
	var g *group
	if machine, ok := nodes.MachineID(node.GetProviderID()); ok {
		g = p.groupOf(machine)
	} else if name, is := strings.CutSuffix(node.GetName(), "-template"); is {
		g = p.group(name)
	}
	if g == nil {
		return size, offer
	}
	spec := g.spec()
	if size == "" {
		size = spec.Size()
	}
	return size, spec.Offer()
}

// noPrice returns the error that makes cluster-autoscaler go on without a price.
func (p *Provider) noPrice(what string) error {
	if p.prices.source == nil {
		return status.Error(codes.Unimplemented, "there are no prices: --prices is empty")
	}
	return status.Errorf(codes.Unimplemented, "the price of %s in %s is not known, or not yet", what, p.Location)
}

// PricingPodPrice returns what the resources that a pod requests cost in a time, on the cheapest machines of all node groups.
func (s *Server) PricingPodPrice(_ context.Context, r *externalgrpc.PricingPodPriceRequest) (*externalgrpc.PricingPodPriceResponse, error) {
	during, err := duration(r.GetStartTimestamp(), r.GetEndTimestamp(), r.GetStartTime(), r.GetEndTime())
	if err != nil {
		return nil, err
	}
	pod, err := readPod(r)
	if err != nil {
		return nil, err
	}
	units, known := nodegroup.UnitsOf(s.Provider.priced())
	if !known {
		return nil, s.Provider.noPrice("the machines of every node group")
	}
	return &externalgrpc.PricingPodPriceResponse{Price: units.Price(pod, during)}, nil
}

// priced returns the sizes of all groups with the prices that are known. The price of Linux on demand stands for all: a pod is
// compared with machines of all kinds.
func (p *Provider) priced() []nodegroup.Priced {
	var all []nodegroup.Priced
	for _, g := range p.all() {
		name := g.spec().Size()
		rates := p.prices.rates(p.writes.ctx(), name)
		size, known := p.catalogue.size(name)
		if hourly, ok := rates.Price(nodegroup.Offer{}, time.Hour); ok && known {
			all = append(all, nodegroup.Priced{Size: size, Hourly: hourly})
		}
	}
	return all
}

// readPod reads the pod of a request, in the field of either generation.
func readPod(r *externalgrpc.PricingPodPriceRequest) (*corev1.Pod, error) {
	text := r.GetPodBytes()
	if len(text) == 0 {
		text = r.GetPod()
	}
	var pod corev1.Pod
	if len(text) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the request has no pod")
	}
	if err := pod.Unmarshal(text); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the pod cannot be read: %v", err)
	}
	return &pod, nil
}

// duration returns the time of which a price is asked, from the fields of either generation.
func duration(begin, end *timestamppb.Timestamp, oldBegin, oldEnd *externalgrpc.Time) (time.Duration, error) {
	var during time.Duration
	switch {
	case begin != nil && end != nil:
		during = end.AsTime().Sub(begin.AsTime())
	case oldBegin != nil && oldEnd != nil:
		during = time.Unix(oldEnd.GetSeconds(), int64(oldEnd.GetNanos())).Sub(time.Unix(oldBegin.GetSeconds(), int64(oldBegin.GetNanos())))
	default:
		return 0, status.Error(codes.InvalidArgument, "the request has no time: a beginning and an end are needed")
	}
	if during <= 0 {
		return 0, status.Errorf(codes.InvalidArgument, "the time of a price is %v: the end must be after the beginning", during)
	}
	return during, nil
}
