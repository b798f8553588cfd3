/** How much a `maintain` call may do before it returns (LB-5). */
export interface MaintenanceBudget {
  /** True once the time is used up. Cheap: ask after every few dozen entries. */
  spent(): boolean;
}
