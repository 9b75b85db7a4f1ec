// Tables, bars, heat maps, scatters, curves and strips alone.
import { open } from "../page";
import { NUMBERS } from "../views/numbers";

open({ views: [], ...NUMBERS });
