package nodegroup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kaz/internal/azure"
	"kaz/internal/plan/poolnode"
)

// prefix begins the names of all tags that describe the nodes of a group.
const prefix = poolnode.TagPrefix

// Options is what the tags of a scale set say of how its group scales. A nil field is not given.
type Options struct {
	Utilization, GPUUtilization            *float64
	UnneededTime, UnreadyTime, ProvisionIn *time.Duration
	ZeroOrMax, IgnoreDaemonSets            *bool
	// Deallocate keeps machines that are scaled down, switched off, at most MaxDeallocated of them (0: no limit).
	Deallocate     bool
	MaxDeallocated int
	ForceDelete    *bool
}

// Overrides reports whether an option that cluster-autoscaler itself has is given.
func (o Options) Overrides() bool {
	return o.Utilization != nil || o.GPUUtilization != nil || o.UnneededTime != nil || o.UnreadyTime != nil ||
		o.ProvisionIn != nil || o.ZeroOrMax != nil || o.IgnoreDaemonSets != nil
}

// optionTag is one row of the table of options: the end of a tag's name, and what its value does.
type optionTag struct {
	name string
	read func(o *Options, value string) error
}

func optionTags() []optionTag {
	return []optionTag{
		{"scaledownutilizationthreshold", fraction(func(o *Options) **float64 { return &o.Utilization })},
		{"scaledowngpuutilizationthreshold", fraction(func(o *Options) **float64 { return &o.GPUUtilization })},
		{"scaledownunneededtime", duration(func(o *Options) **time.Duration { return &o.UnneededTime })},
		{"scaledownunreadytime", duration(func(o *Options) **time.Duration { return &o.UnreadyTime })},
		{"maxnodeprovisiontime", duration(func(o *Options) **time.Duration { return &o.ProvisionIn })},
		{"zeroormaxnodescaling", boolean(func(o *Options) **bool { return &o.ZeroOrMax })},
		{"ignoredaemonsetsutilization", boolean(func(o *Options) **bool { return &o.IgnoreDaemonSets })},
		{"forcedelete", boolean(func(o *Options) **bool { return &o.ForceDelete })},
		{"scaledownmode", readMode},
		{"maxdeallocated", func(o *Options, value string) (err error) {
			o.MaxDeallocated, err = parseSize(value)
			return err
		}},
	}
}

func fraction(field func(*Options) **float64) func(*Options, string) error {
	return func(o *Options, value string) error {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return fmt.Errorf("%q is not a number from 0 to 1", value)
		}
		*field(o) = &f
		return nil
	}
}

func duration(field func(*Options) **time.Duration) func(*Options, string) error {
	return func(o *Options, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration such as 10m0s", value)
		}
		*field(o) = &d
		return nil
	}
}

func boolean(field func(*Options) **bool) func(*Options, string) error {
	return func(o *Options, value string) error {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		*field(o) = &b
		return nil
	}
}

func readMode(o *Options, value string) error {
	switch strings.ToLower(value) {
	case "deallocate":
		o.Deallocate = true
	case "delete":
		o.Deallocate = false
	default:
		return fmt.Errorf("%q is neither delete nor deallocate", value)
	}
	return nil
}

// ReadOptions reads the options in the tags of a scale set. A tag with a wrong value is left out, with a warning.
func ReadOptions(tags azure.Tags) (o Options, warnings []string) {
	for _, name := range sorted(tags) {
		option, ok := cutFold(name, prefix+"autoscaling-options_")
		if !ok {
			continue
		}
		if err := readOption(&o, option, tags[name]); err != nil {
			warnings = append(warnings, fmt.Sprintf("tag %s: %v", name, err))
		}
	}
	return o, warnings
}

func readOption(o *Options, option, value string) error {
	for _, known := range optionTags() {
		if strings.EqualFold(known.name, option) {
			return known.read(o, strings.TrimSpace(value))
		}
	}
	return fmt.Errorf("there is no such option")
}

func sorted(tags azure.Tags) []string { return slices.Sorted(maps.Keys(tags)) }

// cutFold cuts the prefix off a tag's name. Azure compares the names of tags without regard to case.
func cutFold(name, prefix string) (string, bool) {
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", false
	}
	return name[len(prefix):], true
}

// Described is what the tags of a scale set say of its nodes.
type Described struct {
	Labels    map[string]string
	Taints    []corev1.Taint
	Resources corev1.ResourceList
}

// ReadTags reads labels, taints and resources of the nodes in the tags of a scale set. A tag with a wrong value is left
// out, with a warning.
func ReadTags(tags azure.Tags) (d Described, warnings []string) {
	d = Described{Labels: map[string]string{}, Resources: corev1.ResourceList{}}
	warn := func(name, format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("tag %s: %s", name, fmt.Sprintf(format, args...)))
	}
	for _, name := range sorted(tags) {
		value := tags[name]
		if key, ok := cutFold(name, prefix+"label_"); ok {
			d.Labels[poolnode.Decode(key)] = value
		} else if key, ok := cutFold(name, prefix+"taint_"); ok {
			text, effect, _ := strings.Cut(value, ":")
			if !slices.Contains(effects(), corev1.TaintEffect(effect)) {
				warn(name, "%q is not VALUE:EFFECT with the effect NoSchedule, NoExecute or PreferNoSchedule", value)
				continue
			}
			d.Taints = append(d.Taints, corev1.Taint{Key: poolnode.Decode(key), Value: text, Effect: corev1.TaintEffect(effect)})
		} else if key, ok := cutFold(name, prefix+"resources_"); ok {
			quantity, err := resource.ParseQuantity(value)
			if err != nil {
				warn(name, "%q is not a quantity such as 3800m or 11Gi", value)
				continue
			}
			d.Resources[corev1.ResourceName(poolnode.Decode(key))] = quantity
		}
	}
	return d, warnings
}

func effects() []corev1.TaintEffect {
	return []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
}
