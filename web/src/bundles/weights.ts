// The views of weights, and numbers beside them.
import { open } from "../page";
import { NUMBERS } from "../views/numbers";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, ...NUMBERS });
