package vnet

import "kaz/internal/localazure/behaviour"

const communitiesPath = "properties.bgpCommunities"

// regionalCommunities are the BGP communities of regions, as far as Azure's documentation names them.
var regionalCommunities = map[string]string{
	"westeurope": "12076:50002", "northeurope": "12076:50003", "eastus": "12076:50004", "eastus2": "12076:50005", "westus": "12076:50006",
	"northcentralus": "12076:50007", "southcentralus": "12076:50008", "centralus": "12076:50009",
}

// communitiesOf are the BGP communities of a network with the one of its region, nil without any.
func communitiesOf(network behaviour.Object) behaviour.Object {
	own := behaviour.Sub(network, communitiesPath)
	if own == nil {
		return nil
	}
	own = behaviour.Clone(own)
	if regional := regionalCommunities[behaviour.Text(network, "location")]; regional != "" {
		own["regionalCommunity"] = regional
	}
	return own
}

func showCommunities(view behaviour.Object) {
	if own := communitiesOf(view); own != nil {
		behaviour.Set(view, communitiesPath, own)
	}
}
