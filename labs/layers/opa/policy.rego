package lab

import rego.v1

# Each user has the roles of the list. A role permits methods on the paths below a prefix.
roles := {"ann": ["reader", "writer"], "bob": ["guest"]}

permits := {
	"reader": [{"method": "GET", "prefix": "items"}],
	"writer": [{"method": "POST", "prefix": "items"}, {"method": "DELETE", "prefix": "items"}],
	"guest": [{"method": "GET", "prefix": "public"}],
}

default allow := false

allow if {
	some role in roles[input.user]
	some permit in permits[role]
	permit.method == input.method
	permit.prefix == input.path[0]
}
