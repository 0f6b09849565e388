package app

import (
	"fmt"
	"strconv"

	cliflag "k8s.io/component-base/cli/flag"
)

// variable is an environment variable of AGIC.
type variable struct {
	name, flag string
	// convert returns the value of the flag. nil takes the text as it is.
	convert func(text string) (string, error)
	// refused says why the value true is refused, "" for a variable that sets a flag.
	refused string
}

// variables returns the environment variables of AGIC that have a meaning here, and that of further application gateways. A flag that is
// given goes before its variable.
func variables() []variable {
	return []variable{
		{name: "APPGW_RESOURCE_ID", flag: "gateway-id"},
		{name: "APPGW_RESOURCE_IDS", flag: "further-gateway-ids"},
		{name: "APPGW_NAME", flag: "gateway"},
		{name: "APPGW_RESOURCE_GROUP", flag: "gateway-resource-group"},
		{name: "APPGW_SUBSCRIPTION_ID", flag: "gateway-subscription"},
		{name: "AZURE_CLOUD_PROVIDER_LOCATION", flag: "cloud-config"},
		{name: "KUBERNETES_WATCHNAMESPACE", flag: "watch-namespaces"},
		{name: "USE_PRIVATE_IP", flag: "use-private-ip", convert: truth},
		{name: "INGRESS_CLASS", flag: "ingress-class-annotation"},
		{name: "INGRESS_CLASS_RESOURCE_NAME", flag: "ingress-class"},
		{name: "INGRESS_CLASS_RESOURCE_CONTROLLER", flag: "ingress-class-controller"},
		{name: "INGRESS_CLASS_RESOURCE_DEFAULT", flag: "ingress-without-class", convert: truth},
		{name: "ATTACH_WAF_POLICY_TO_LISTENER", flag: "waf-policy-at-listener", convert: truth},
		{name: "RECONCILE_PERIOD_SECONDS", flag: "drift-interval", convert: seconds},
		{name: "HTTP_SERVICE_PORT", flag: "metrics-address", convert: func(text string) (string, error) {
			_, err := strconv.ParseUint(text, 10, 16)
			return ":" + text, err
		}},
		{name: "AGIC_POD_NAMESPACE", flag: "leader-elect-resource-namespace"},
		{name: "APPGW_ENABLE_DEPLOY", refused: "make the application gateway before; this program does not make one"},
		{name: "MULTI_CLUSTER_MODE", refused: "Ingresses of several clusters (MultiClusterIngress) are not served"},
		{name: "APPGW_ENABLE_ISTIO_INTEGRATION", refused: "Gateways of Istio are not served"},
		{name: "HOSTED_ON_UNDERLAY", refused: "that is a mode of a managed AGIC"},
	}
}

func truth(text string) (string, error) {
	is, err := strconv.ParseBool(text)
	return strconv.FormatBool(is), err
}

func seconds(text string) (string, error) {
	_, err := strconv.ParseUint(text, 10, 32)
	return text + "s", err
}

// classesRead is the variable that switches IngressClasses off.
const classesRead = "INGRESS_CLASS_RESOURCE_ENABLED"

// readEnvironment sets flags to the values of AGIC's environment variables. It notes what is wrong with them.
func (o *settings) readEnvironment(sets cliflag.NamedFlagSets, lookup func(string) (string, bool)) {
	wrong := func(v variable, text, allowed string) {
		o.environment = append(o.environment, fmt.Errorf("$%s %q: %s", v.name, text, allowed))
	}
	for _, v := range variables() {
		text, _ := lookup(v.name)
		if text == "" {
			continue
		}
		if v.refused != "" {
			if is, err := strconv.ParseBool(text); err != nil || is {
				wrong(v, text, v.refused)
			}
			continue
		}
		value, err := text, error(nil)
		if v.convert != nil {
			value, err = v.convert(text)
		}
		for _, set := range sets.FlagSets {
			if f := set.Lookup(v.flag); f != nil && err == nil {
				err = f.Value.Set(value)
			}
		}
		if err != nil {
			wrong(v, text, "not allowed; see --"+v.flag)
		}
	}
	if text, _ := lookup(classesRead); text != "" {
		if is, err := strconv.ParseBool(text); err != nil {
			wrong(variable{name: classesRead}, text, "must be true or false")
		} else if !is {
			o.class.Name = ""
		}
	}
}
