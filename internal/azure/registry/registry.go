// Package registry has the names of container registries in Azure's clouds. Layer L0.
package registry

// Program is the name of the program that gives a kubelet the credential for a registry in Azure.
const Program = "acr-credential-provider"

// Domains returns the domains of registries in Azure's clouds.
func Domains() []string { return []string{"azurecr.io", "azurecr.cn", "azurecr.de", "azurecr.us"} }

// MatchImages returns the patterns of images for which a kubelet asks [Program]: those of registries, NAME.DOMAIN, and of their
// regional endpoints, NAME.REGION.geo.DOMAIN. A pattern matches only hosts with as many labels as it has.
func MatchImages() []string {
	var all []string
	for _, pattern := range []string{"*.", "*.*.geo."} {
		for _, domain := range Domains() {
			all = append(all, pattern+domain)
		}
	}
	return all
}
