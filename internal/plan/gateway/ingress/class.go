package ingress

import (
	networking "k8s.io/api/networking/v1"
)

// Names that users of AGIC have.
const (
	ClassAnnotation = "kubernetes.io/ingress.class"
	ClassValue      = "azure/application-gateway"
	ClassName       = "azure-application-gateway"
)

// Class says which Ingresses are the controller's.
type Class struct {
	// Value is what the annotation kubernetes.io/ingress.class must have. It is also the controller of the IngressClass.
	Value string
	// Name is the name of the IngressClass. "" means that classes are not read.
	Name string
	// Controller is the controller that the IngressClass must have.
	Controller string
	// TakesUnclassed also takes Ingresses without any class.
	TakesUnclassed bool
}

// Takes reports whether an Ingress is the controller's. An annotation that is not empty decides alone. classes are all IngressClasses.
func (c Class) Takes(i *networking.Ingress, classes []*networking.IngressClass) bool {
	if value := i.Annotations[ClassAnnotation]; value != "" {
		return value == c.Value
	}
	if c.Name == "" {
		return false
	}
	if i.Spec.IngressClassName == nil {
		return c.TakesUnclassed
	}
	if *i.Spec.IngressClassName != c.Name {
		return false
	}
	for _, class := range classes {
		if class.Name == c.Name {
			return class.Spec.Controller == c.Controller
		}
	}
	return false
}
