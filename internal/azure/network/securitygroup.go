package network

import "kaz/internal/azure"

// SecurityGroup is the properties of a network security group.
type SecurityGroup struct {
	SecurityRules []azure.Child[SecurityRule] `json:"securityRules,omitempty"`
}

// SecurityRule lets packets in or keeps them out. Of each pair of a singular and a plural field, Azure wants one. It
// returns the other one empty or not at all.
type SecurityRule struct {
	Priority                   int32    `json:"priority,omitempty"`
	Direction                  string   `json:"direction,omitempty" azure:"fold"`
	Access                     string   `json:"access,omitempty" azure:"fold"`
	Protocol                   string   `json:"protocol,omitempty" azure:"fold"`
	SourceAddressPrefix        *string  `json:"sourceAddressPrefix,omitempty" azure:"exact"`
	SourceAddressPrefixes      []string `json:"sourceAddressPrefixes,omitempty" azure:"set"`
	SourcePortRange            *string  `json:"sourcePortRange,omitempty" azure:"exact"`
	SourcePortRanges           []string `json:"sourcePortRanges,omitempty" azure:"set"`
	DestinationAddressPrefix   *string  `json:"destinationAddressPrefix,omitempty" azure:"exact"`
	DestinationAddressPrefixes []string `json:"destinationAddressPrefixes,omitempty" azure:"set"`
	DestinationPortRange       *string  `json:"destinationPortRange,omitempty" azure:"exact"`
	DestinationPortRanges      []string `json:"destinationPortRanges,omitempty" azure:"set"`

	// DestinationApplicationSecurityGroups stands in for addresses.
	DestinationApplicationSecurityGroups []azure.Reference `json:"destinationApplicationSecurityGroups,omitempty" azure:"read"`
}
