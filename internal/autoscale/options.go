package autoscale

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/plan/nodegroup"
)

// merged returns the options of the request with those of the tags. Clients read a missing value as 0. merged therefore
// gives all values, in the fields of both generations.
func merged(defaults *externalgrpc.NodeGroupAutoscalingOptions, o nodegroup.Options) *externalgrpc.NodeGroupAutoscalingOptions {
	unneeded := either(o.UnneededTime, defaults.GetScaleDownUnneededDuration(), defaults.GetScaleDownUnneededTime())
	unready := either(o.UnreadyTime, defaults.GetScaleDownUnreadyDuration(), defaults.GetScaleDownUnreadyTime())
	provision := either(o.ProvisionIn, defaults.GetMaxNodeProvisionDuration(), defaults.GetMaxNodeProvisionTime())
	return &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold:    or(o.Utilization, defaults.GetScaleDownUtilizationThreshold()),
		ScaleDownGpuUtilizationThreshold: or(o.GPUUtilization, defaults.GetScaleDownGpuUtilizationThreshold()),
		ZeroOrMaxNodeScaling:             or(o.ZeroOrMax, defaults.GetZeroOrMaxNodeScaling()),
		IgnoreDaemonSetsUtilization:      or(o.IgnoreDaemonSets, defaults.GetIgnoreDaemonSetsUtilization()),
		ScaleDownUnneededTime:            &externalgrpc.Duration{Duration: int64(unneeded)},
		ScaleDownUnreadyTime:             &externalgrpc.Duration{Duration: int64(unready)},
		MaxNodeProvisionTime:             &externalgrpc.Duration{Duration: int64(provision)},
		ScaleDownUnneededDuration:        durationpb.New(unneeded),
		ScaleDownUnreadyDuration:         durationpb.New(unready),
		MaxNodeProvisionDuration:         durationpb.New(provision),
	}
}

func or[T any](given *T, otherwise T) T {
	if given != nil {
		return *given
	}
	return otherwise
}

// either returns the value of the tag, else that of the newer field, else that of the older one.
func either(given *time.Duration, newer *durationpb.Duration, older *externalgrpc.Duration) time.Duration {
	switch {
	case given != nil:
		return *given
	case newer != nil:
		return newer.AsDuration()
	}
	return time.Duration(older.GetDuration())
}
