package cloudconfig

import (
	"strconv"
	"strings"
	"time"
)

// Default is the configuration of an empty file.
func Default() Config {
	c := unread()
	c.Complete()
	return c
}

// unread is a configuration before anything was read: only where false means
// something else than nothing is a value there.
func unread() Config {
	var c Config
	for _, k := range allKeys() {
		if k.initial != "true" {
			continue
		}
		if field, ok := k.ref(&c).(*bool); ok {
			*field = true
		}
	}
	return c
}

// Complete fills in defaults where a value is zero and brings values into
// their canonical spelling. Doing it twice changes nothing. It is done for
// every Config that this package returns.
func (c *Config) Complete() {
	for _, k := range allKeys() {
		if k.ref == nil {
			continue
		}
		c.complete(k)
	}
	// The one place where the case of the group is decided.
	c.ResourceGroup = strings.ToLower(c.ResourceGroup)
	for _, group := range []*string{
		&c.VnetResourceGroup, &c.SecurityGroupResourceGroup, &c.RouteTableResourceGroup,
		&c.LoadBalancerResourceGroup, &c.PrivateLinkServiceResourceGroup,
	} {
		if *group == "" {
			*group = c.ResourceGroup
		}
	}
	if c.NetworkResourceSubscriptionID == "" {
		c.NetworkResourceSubscriptionID = c.SubscriptionID
	}
	if c.RouteUpdateWaiting < 0 {
		c.RouteUpdateWaiting = 30 * time.Second
	}
	switch {
	case !c.CloudProviderBackoff:
		c.CloudProviderBackoffRetries = 1
	case c.CloudProviderBackoffRetries == 0:
		c.CloudProviderBackoffRetries = 6
	}
}

func (c *Config) complete(k key) {
	switch field := k.ref(c).(type) {
	case *string:
		if *field == "" {
			*field = k.initial
		}
		for _, allowed := range k.allowed {
			if !k.exact && strings.EqualFold(*field, allowed) {
				*field = allowed
			}
		}
	case *int:
		if *field == 0 {
			*field = int(k.initialNumber())
		}
	case *float64:
		if *field == 0 {
			*field = k.initialNumber()
		}
	case *time.Duration:
		if *field == 0 {
			*field = time.Duration(k.initialNumber()) * time.Second
		}
	}
}

func (k key) initialNumber() float64 {
	if k.initial == "" {
		return 0
	}
	n, err := strconv.ParseFloat(k.initial, 64)
	if err != nil {
		panic("default of " + k.name + " is no number: " + k.initial)
	}
	return n
}
