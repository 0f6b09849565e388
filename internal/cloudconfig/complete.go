package cloudconfig

import (
	"strconv"
	"strings"
	"time"
)

// Default returns the configuration of an empty file.
func Default() Config {
	c := unread()
	c.Complete()
	return c
}

// unread returns a configuration before anything is read. Only keys with the default true are set,
// because their zero value is not their default.
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

// Complete fills in the defaults and brings values into their canonical spelling. It is idempotent.
// Every Config that this package returns is complete.
func (c *Config) Complete() {
	for _, k := range allKeys() {
		if k.ref == nil {
			continue
		}
		c.complete(k)
	}
	// Resource group names are compared without case; the rest of the program relies on lower case.
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
		panic("default of " + k.name + " is not a number: " + k.initial)
	}
	return n
}
