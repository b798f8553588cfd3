/** How a dispatched request ended, as the host saw it; what the circuit breaker makes of it is CB-20 to CB-25. */
export type LeaseOutcome =
  /** The worker answered and the answer was relayed to its end. For gRPC the mapped HTTP status (CB-20). */
  | { readonly status: number }
  /** No answer (`connect` counts as 502, `timeout` as 504), or the body broke off after the answer began (CB-25). */
  | { readonly error: 'connect' | 'timeout' | 'body' }
  /** The client went away or the host gave up: nothing is recorded (CB-23). */
  | { readonly aborted: true };
