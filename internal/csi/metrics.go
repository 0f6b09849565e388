package csi

import (
	"context"
	"errors"
	"path"
	"strconv"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"kaz/internal/observe"
)

// Metrics are the metrics of a driver. A nil value measures nothing.
type Metrics struct {
	durations *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
	batches   prometheus.Histogram
	waits     prometheus.Histogram
	// The names under which users watch the driver that this one replaces.
	knownDurations *prometheus.HistogramVec
	knownCount     *prometheus.CounterVec
}

// NewMetrics registers the metrics of a driver. known is the prefix of the metrics of the driver that this one replaces.
func NewMetrics(r prometheus.Registerer, known string) (*Metrics, error) {
	operation := []string{"operation", "success"}
	m := &Metrics{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kaz_csi_operation_duration_seconds", Help: "Time of a CSI operation, by its gRPC code.",
			Buckets: []float64{.01, .05, .1, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320},
		}, []string{"method", "code"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kaz_csi_operations_in_flight", Help: "CSI operations that have begun and not ended.",
		}, []string{"method"}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kaz_csi_attach_batch_changes", Help: "Attachments and detachments of one machine that are done together.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64},
		}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kaz_csi_attach_wait_seconds", Help: "Time that an attachment or detachment waits for earlier ones of its machine.",
			Buckets: []float64{.001, .01, .1, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320},
		}),
		knownDurations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: known + "_operation_duration_seconds", Help: "Time of an operation.",
			Buckets: []float64{.1, .2, .5, 1, 5, 10, 15, 20, 30, 40, 50, 60, 100, 200, 300},
		}, operation),
		knownCount: prometheus.NewCounterVec(prometheus.CounterOpts{Name: known + "_operations_total", Help: "Operations that ended."},
			operation),
	}
	return m, errors.Join(observe.Register(r, &m.durations), observe.Register(r, &m.inFlight), observe.Register(r, &m.batches),
		observe.Register(r, &m.waits), observe.Register(r, &m.knownDurations), observe.Register(r, &m.knownCount))
}

// Batch counts changes of one machine that are done together, by the time that each has waited.
func (m *Metrics) Batch(waits []time.Duration) {
	if m == nil {
		return
	}
	m.batches.Observe(float64(len(waits)))
	for _, w := range waits {
		m.waits.Observe(w.Seconds())
	}
}

// intercept measures an operation.
func (m *Metrics) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if m == nil {
		return handle(ctx, request)
	}
	method := path.Base(info.FullMethod)
	m.inFlight.WithLabelValues(method).Inc()
	defer m.inFlight.WithLabelValues(method).Dec()
	began := time.Now()
	answer, err := handle(ctx, request)
	took := time.Since(began).Seconds()
	m.durations.WithLabelValues(method, status.Code(err).String()).Observe(took)
	if known := knownOperation(method, request); known != "" {
		success := strconv.FormatBool(err == nil)
		m.knownDurations.WithLabelValues(known, success).Observe(took)
		m.knownCount.WithLabelValues(known, success).Inc()
	}
	return answer, err
}

// knownOperations are the operations for which the driver that this one replaces has names.
var knownOperations = map[string]string{
	"CreateVolume": "controller_create_volume", "DeleteVolume": "controller_delete_volume",
	"ControllerModifyVolume": "controller_modify_volume", "ControllerPublishVolume": "controller_publish_volume",
	"ControllerUnpublishVolume": "controller_unpublish_volume", "ControllerExpandVolume": "controller_expand_volume",
	"CreateSnapshot": "controller_create_snapshot", "DeleteSnapshot": "controller_delete_snapshot",
	"NodeStageVolume": "node_stage_volume", "NodeUnstageVolume": "node_unstage_volume",
	"NodePublishVolume": "node_publish_volume", "NodeUnpublishVolume": "node_unpublish_volume",
	"NodeExpandVolume": "node_expand_volume",
}

// knownOperation returns the name of an operation, "" for an operation that is not counted.
func knownOperation(method string, request any) string {
	name := knownOperations[method]
	if r, ok := request.(*csispec.CreateVolumeRequest); ok {
		switch {
		case r.GetVolumeContentSource().GetSnapshot() != nil:
			name += "_from_snapshot"
		case r.GetVolumeContentSource().GetVolume() != nil:
			name += "_from_volume"
		}
	}
	return name
}
